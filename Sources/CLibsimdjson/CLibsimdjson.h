// simdjson is C++ and reaches Swift through the target CJSONReader. This module only carries the library's name, its
// pkg-config file and the packages to install for SwiftPM, so the header has nothing to declare.

#ifndef CLIBSIMDJSON_H
#define CLIBSIMDJSON_H
#endif
