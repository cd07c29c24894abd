#include "CPricing.h"

#include <map>
#include <stdexcept>
#include <string>

namespace pricing {

class Catalogue {
 public:
  long price(const std::string &article) const {
    auto found = prices_.find(article);
    if (found == prices_.end()) throw std::out_of_range("no price for " + article);
    return found->second;
  }

 private:
  std::map<std::string, long> prices_{{"tea", 450}, {"coffee", 620}, {"cocoa", 580}};
};

long quote(const Catalogue &catalogue, const std::string &article, long quantity) {
  return catalogue.price(article) * quantity;
}

}  // namespace pricing

// A C function lets no exception out: one that gets here ends the process in std::terminate.
extern "C" long pricing_quote(const char *article, long quantity) noexcept {
  static const pricing::Catalogue catalogue;
  return pricing::quote(catalogue, article, quantity);
}
