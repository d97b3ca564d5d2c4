/* What every file of the sample application includes. */

#ifndef SAMPLE_H
#define SAMPLE_H

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config.h"
#include "modules.h"
#include "util.h"

#endif
