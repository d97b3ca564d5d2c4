/* What ends the program when it cannot go on. */

#include "sample.h"

void fail(const char *why)
{
	fprintf(stderr, "sample: %s\n", why);
	exit(1);
}
