/* Calls on mapped files: a program has one mapping that stays, which calls read and write, so that
 * an address without memory is an error, and no signal. */
#include "performer.h"
#include <sys/mman.h>
#include <sys/uio.h>

enum { LENGTH = 8192 };

static char *mapped;
static size_t length;

static void keep(int at, const struct line *l) {
	if (mapped)
		munmap(mapped, length);
	mapped = mmap(NULL, LENGTH, number(l, 2), number(l, 3), number(l, 1), number(l, 4));
	length = LENGTH;
	if (mapped == MAP_FAILED)
		mapped = NULL;
	answer(at, mapped ? 0 : -1);
}

void memory_call(int at, const struct line *l) {
	const char *call = l->word[0];
	char data[8];
	if (IS("map"))
		keep(at, l);
	else if (IS("map_read")) {
		long result = pwrite(SCRATCH, mapped, sizeof data, 0);
		if (result > 0)
			result = pread(SCRATCH, data, result, 0);
		answer_data(at, result, data);
	} else if (IS("map_write")) {
		memset(data, 'k' + at % 10, sizeof data);
		pwrite(SCRATCH, data, sizeof data, 0);
		answer(at, pread(SCRATCH, mapped + number(l, 1), sizeof data, 0));
	} else if (IS("map_protect"))
		answer(at, mprotect(mapped, length, number(l, 1)));
	else if (IS("map_sync"))
		answer(at, msync(mapped, length, number(l, 1)));
	else if (IS("map_advise"))
		answer(at, madvise(mapped, length, number(l, 1)));
	else if (IS("map_resize")) {
		char *moved = mapped ? mremap(mapped, length, number(l, 1), MREMAP_MAYMOVE) : MAP_FAILED;
		if (moved != MAP_FAILED)
			mapped = moved, length = number(l, 1);
		answer(at, moved == MAP_FAILED ? -1 : 0);
	}
}
