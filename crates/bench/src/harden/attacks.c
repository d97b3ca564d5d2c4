/*
 * Attacks on memory, each on a program's own fault, compiled with the protection that is tried.
 *
 *   attacks NAME LENGTH SHIFT   tries it with so long an overflow, words beginning so late; ends with 42 if it reached its aim
 *
 * What is overwritten lies where the compiler put it: whoever attacks knows the program, not the seeds of this process,
 * so lengths are tried one after another. The faults are the programs', the aims the attackers'.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HIT 42
#define ROOM 64
#define NOINLINE __attribute__((noinline))
/* Variables lie in the order in which they are written, as they did in the compilers that reordering was made for: today's
 * happen to put arrays last when they optimise, with or without protection. */
#ifdef __clang__
#define AS_WRITTEN __attribute__((noinline, optnone))
#else
#define AS_WRITTEN __attribute__((noinline, optimize("O0")))
#endif
#define HIDE(x) __asm__ volatile("" : "+r"(x) : : "memory")
#define USED(x) __asm__ volatile("" : : "r"(x) : "memory")

static unsigned char evil[1024];
static size_t length;
static volatile long secret;
static char harmless[256];
static volatile int calling;

/* Where attackers want to go. It may be entered by a return: no aligned stack is taken for granted. */
__attribute__((noinline, used)) static void win(void)
{
	_exit(HIT);
}

/* The same by a pointer, and not by a return. */
__attribute__((noinline, used)) static void win_by_call(void)
{
	_exit(calling ? HIT : 3);
}

__attribute__((noinline, used)) static void lose(void)
{
	secret = 0;
	HIDE(length);
}

static void fill(uintptr_t word)
{
	for (size_t n = 0; n + sizeof word <= sizeof evil; n += sizeof word)
		memcpy(evil + n, &word, sizeof word);
}

/* Copies as programs do that forget to look at the length. */
NOINLINE static void careless(char *to, const unsigned char *from, size_t bytes)
{
	for (size_t n = 0; n < bytes; n++)
		to[n] = (char)from[n];
}

NOINLINE static void return_address(void)
{
	char name[ROOM];

	careless(name, evil, length);
	USED(name);
}

/* The same by a function of the library, whose bound the compiler may know. */
NOINLINE static void return_address_memcpy(void)
{
	char name[ROOM];
	size_t bytes = length;

	HIDE(bytes);
	memcpy(name, evil, bytes);
	USED(name);
}

NOINLINE static void small_array(void)
{
	char name[4];

	careless(name, evil, length);
	USED(name);
}

NOINLINE static void words_array(void)
{
	long numbers[8];

	careless((char *)numbers, evil, length);
	USED(numbers);
}

AS_WRITTEN static void saved_pointer(void)
{
	char *place = harmless;
	char name[ROOM];

	careless(name, evil, length);
	USED(name);
	*place = 1;
	if (secret)
		win();
}

AS_WRITTEN static void function_pointer(void)
{
	void (*handler)(void) = lose;
	char name[ROOM];

	careless(name, evil, length);
	USED(name);
	calling = 1;
	handler();
	calling = 0;
}

/* The seventh argument lies on the stack, behind the return address. */
AS_WRITTEN static void argument(long a, long b, long c, long d, long e, long f, void (*handler)(void))
{
	char name[ROOM];

	careless(name, evil, length + (size_t)((a + b + c + d + e + f) & 0));
	USED(name);
	calling = 1;
	handler();
	calling = 0;
}

AS_WRITTEN static void off_by_one(void)
{
	long may = 0;
	char name[ROOM + 8];

	memset(evil, 1, sizeof evil);
	careless(name, evil, sizeof name + 1);
	USED(name);
	if (may)
		win();
}

NOINLINE static void in_struct(void)
{
	struct { char name[ROOM]; void (*handler)(void); } user;

	user.handler = lose;
	USED(&user);
	careless(user.name, evil, length);
	USED(&user);
	user.handler();
}

NOINLINE static void in_struct_strcpy(void)
{
	struct { char name[ROOM]; void (*handler)(void); } user;
	const char *from = (const char *)evil;

	memset(evil, 'A', ROOM);
	HIDE(from);
	user.handler = lose;
	USED(&user);
	strcpy(user.name, from);
	USED(&user);
	user.handler();
}

NOINLINE static void by_alloca(size_t room)
{
	char *name = alloca(room);

	HIDE(name);
	careless(name, evil, length);
	USED(name);
}

NOINLINE static void long_jump(void)
{
	static struct { char name[ROOM]; void *place[5]; } user;

	if (__builtin_setjmp(user.place) == 0) {
		careless(user.name, evil, length);
		USED(&user);
		__builtin_longjmp(user.place, 1);
	}
}

NOINLINE static void format(void)
{
	char line[128], shown[256];
	const volatile long *aim = &secret;
	const char *said = line;

	memset(line, 0, sizeof line);
	snprintf(line, 32, "%%%zu$n.", length);
	for (size_t n = 32; n + sizeof aim <= sizeof line; n += sizeof aim)
		memcpy(line + n, &aim, sizeof aim);
	HIDE(said);
	secret = -1;
	snprintf(shown, sizeof shown, said, 0L);
	if (secret != -1)
		win();
}

struct session { void (*handler)(void); long id[7]; };

NOINLINE static struct session *open_session(void)
{
	struct session session = {lose, {0}};
	struct session *it = &session;

	HIDE(it);
	return it;
}

NOINLINE static void say(void)
{
	uintptr_t words[64];

	for (size_t n = 0; n < 64; n++)
		words[n] = (uintptr_t)win;
	USED(words);
}

NOINLINE static void after_return(void)
{
	struct session *session = open_session();

	say();
	HIDE(session);
	session->handler();
}

NOINLINE static void call_left_over(void)
{
	void (*handler[32])(void);

	USED(handler);
	if (handler[8])
		handler[8]();
}

NOINLINE static void left_over(void)
{
	say();
	call_left_over();
}

/* A large array jumps over the page that guards the stack, and lies in what is mapped below it. */
NOINLINE static void large(size_t room)
{
	volatile char *array = alloca(room);

	array[0] = 1;
	USED(array);
}

NOINLINE static void clash(void)
{
	const size_t under = 64UL << 20, size = 8UL << 20;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t start = (here - under) & ~(uintptr_t)4095;
	char *below = mmap((void *)start, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	size_t room = here - (start + size / 2);

	if (below == MAP_FAILED)
		_exit(1);
	HIDE(room);
	large(room);
	if (memchr(below, 1, size))
		win();
}

/* Overwrites the place from which a function of the library is called. */
NOINLINE static void linkage(void)
{
	uintptr_t known = (uintptr_t)dlsym(RTLD_DEFAULT, "getppid");
	uintptr_t *table = NULL;

	getppid();
	for (const ElfW(Dyn) *it = _DYNAMIC; it->d_tag != DT_NULL; it++)
		if (it->d_tag == DT_PLTGOT)
			table = (uintptr_t *)it->d_un.d_ptr;
	for (int n = -8; table && n < 24; n++)
		if (table[n] == known) {
			table[n] = (uintptr_t)win;
			getppid();
		}
}

/* Jumps to an address that another process of the same program had: LENGTH is that address. */
NOINLINE static void known_address(void)
{
	if (length == (size_t)(uintptr_t)win)
		win();
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	size_t shift = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;

	length = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	if (strcmp(name, "address") == 0) {
		printf("%zu\n", (size_t)(uintptr_t)win);
		return 0;
	}
	if (strcmp(name, "saved pointer") == 0)
		fill((uintptr_t)&secret);
	else
		fill(strncmp(name, "function pointer", 16) == 0 ? (uintptr_t)win_by_call : (uintptr_t)win);
	memmove(evil, evil + shift % sizeof(uintptr_t), sizeof evil - sizeof(uintptr_t));
	if (strcmp(name, "return address") == 0)
		return_address();
	else if (strcmp(name, "return address, memcpy") == 0)
		return_address_memcpy();
	else if (strcmp(name, "array of 4 bytes") == 0)
		small_array();
	else if (strcmp(name, "array of words") == 0)
		words_array();
	else if (strcmp(name, "saved pointer") == 0)
		saved_pointer();
	else if (strcmp(name, "function pointer before the array") == 0)
		function_pointer();
	else if (strcmp(name, "function pointer as argument") == 0)
		argument(1, 2, 3, 4, 5, 6, lose);
	else if (strcmp(name, "off by one") == 0)
		off_by_one();
	else if (strcmp(name, "inside a struct") == 0)
		in_struct();
	else if (strcmp(name, "inside a struct, strcpy") == 0)
		in_struct_strcpy();
	else if (strcmp(name, "alloca") == 0)
		by_alloca(ROOM + (length & 0));
	else if (strcmp(name, "longjmp buffer") == 0)
		long_jump();
	else if (strcmp(name, "format string") == 0)
		format();
	else if (strcmp(name, "use after return") == 0)
		after_return();
	else if (strcmp(name, "left-over on the stack") == 0)
		left_over();
	else if (strcmp(name, "stack clash") == 0)
		clash();
	else if (strcmp(name, "linkage table") == 0)
		linkage();
	else if (strcmp(name, "known address") == 0)
		known_address();
	else
		return 2;
	return 0;
}
