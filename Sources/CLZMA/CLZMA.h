#ifndef CLZMA_H
#define CLZMA_H

#include <lzma.h>

#endif
