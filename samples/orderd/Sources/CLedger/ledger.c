#include "CLedger.h"

#include <stdlib.h>

struct ledger {
  int accounts;
  int64_t *balances;
};

struct ledger *ledger_open(int accounts) {
  struct ledger *ledger = malloc(sizeof *ledger);
  if (!ledger) return NULL;
  ledger->accounts = accounts;
  ledger->balances = calloc((size_t)accounts, sizeof *ledger->balances);
  if (!ledger->balances) {
    free(ledger);
    return NULL;
  }
  return ledger;
}

int64_t ledger_post(struct ledger *ledger, int account, int64_t cents) {
  return ledger->balances[account % ledger->accounts] += cents;
}

static int64_t sum(const int64_t *balances, int count) {
  int64_t total = 0;
  for (int i = 0; i < count; i++) total += balances[i];
  return total;
}

void ledger_close_month(struct ledger *ledger, int64_t *total) { *total = sum(ledger->balances, ledger->accounts); }

// Bug: the balances are still the ledger's.
void ledger_drop_balances(struct ledger *ledger) { free(ledger->balances); }

void ledger_free(struct ledger *ledger) {
  free(ledger->balances);
  free(ledger);
}
