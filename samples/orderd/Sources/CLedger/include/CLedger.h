// The books of the shop: a small C library, as services inherit them.

#ifndef CLEDGER_H
#define CLEDGER_H

#include <stdint.h>

struct ledger;

struct ledger *ledger_open(int accounts);
/// Adds to an account's balance and returns the new one.
int64_t ledger_post(struct ledger *ledger, int account, int64_t cents);
/// Writes the month's total of all accounts to `total`.
void ledger_close_month(struct ledger *ledger, int64_t *total);
void ledger_drop_balances(struct ledger *ledger);
void ledger_free(struct ledger *ledger);

#endif
