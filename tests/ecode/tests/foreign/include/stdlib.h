#ifndef STDLIB_H
#define STDLIB_H
#define NULL ((void *)0)
typedef unsigned long size_t;
extern void exit(int code);
extern void abort(void);
static char __heap[4 << 20];
static long __heap_used;

static void *malloc(unsigned long size)
{
	void *p = __heap + __heap_used;
	__heap_used += (size + 15) / 16 * 16;
	return p;
}
static void *calloc(unsigned long count, unsigned long size)
{
	char *p = malloc(count * size);
	for (unsigned long i = 0; i < count * size; i++)
		p[i] = 0;
	return p;
}
static void free(void *p) { p = p; }
static int abs(int n) { return n < 0 ? -n : n; }
static int atoi(const char *s)
{
	int n = 0, minus = *s == '-';
	for (s += minus; (*s >= '0' && *s <= '9'); s++)
		n = n * 10 + *s - '0';
	return minus ? -n : n;
}
#endif
