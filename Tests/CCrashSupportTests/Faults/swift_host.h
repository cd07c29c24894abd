#include "CCrashSupport.h"
#include "faults.h"
