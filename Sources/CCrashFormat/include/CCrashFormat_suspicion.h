// Which of the redaction's rules could find something in a text: one quick reading in place of one for each rule.

#ifndef CCRASHFORMAT_SUSPICION_H
#define CCRASHFORMAT_SUSPICION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  CRASH_SUSPECT_PRIVATE_KEY = 1 << 0,
  CRASH_SUSPECT_CREDENTIALS = 1 << 1,
  CRASH_SUSPECT_KEY = 1 << 2,
  CRASH_SUSPECT_CHAT = 1 << 3,
  CRASH_SUSPECT_WEB_TOKEN = 1 << 4,
  CRASH_SUSPECT_AUTHORIZATION = 1 << 5,
  CRASH_SUSPECT_NAMED = 1 << 6,
  CRASH_SUSPECT_ACCOUNT = 1 << 7,
  CRASH_SUSPECT_CARD = 1 << 8,
  CRASH_SUSPECT_SOCIAL_SECURITY = 1 << 9,
  CRASH_SUSPECT_PHONE = 1 << 10,
  CRASH_SUSPECT_HARDWARE = 1 << 11,
  CRASH_SUSPECT_IP4 = 1 << 12,
  CRASH_SUSPECT_IP6 = 1 << 13,
  CRASH_SUSPECT_OTHER_DIGITS = 1 << 14,
  CRASH_SUSPECT_BASE = 1 << 15,
};

/// The rules that have to look at the text, as a sum of the constants above. A rule that is not among them would find
/// nothing; one that is may find nothing either.
///
/// `endings` says what names of secrets end with: bit *c* of element 26*a* + *b* is for names whose last letter is the *a*th
/// of the alphabet, the one before it the *b*th and the one before that the *c*th, all from 0; bit 26 for a name that has
/// no more letters than two. `beginnings` says what keys begin with: bit *b* mod 32 of element 4*a* + *b* / 32 is for those
/// whose first two bytes are *a* and *b*, both ASCII. Linear, no allocation, no state.
uint32_t crash_suspicions(const char *text, size_t length, const uint32_t endings[676],
                          const uint32_t beginnings[512]);

#ifdef __cplusplus
}
#endif
#endif
