// The pricing engine, in C++ behind a C face.

#ifndef CPRICING_H
#define CPRICING_H

#ifdef __cplusplus
extern "C" {
#endif

/// The price of an article in cents.
long pricing_quote(const char *article, long quantity)
#ifdef __cplusplus
    noexcept
#endif
    ;

#ifdef __cplusplus
}
#endif

#endif
