#ifndef STRING_H
#define STRING_H
#define NULL ((void *)0)
typedef unsigned long size_t;
static void *memset(void *to, int byte, unsigned long n)
{
	char *p = to;
	while (n--)
		*p++ = byte;
	return to;
}
static void *memcpy(void *to, const void *from, unsigned long n)
{
	char *p = to;
	const char *q = from;
	while (n--)
		*p++ = *q++;
	return to;
}
static void *memmove(void *to, const void *from, unsigned long n)
{
	char *p = to;
	const char *q = from;
	if (p <= q)
		return memcpy(to, from, n);
	while (n--)
		p[n] = q[n];
	return to;
}
static int memcmp(const void *a, const void *b, unsigned long n)
{
	const unsigned char *p = a, *q = b;
	for (; n--; p++, q++)
		if (*p != *q)
			return *p - *q;
	return 0;
}
static unsigned long strlen(const char *s)
{
	unsigned long n = 0;
	while (s[n])
		n++;
	return n;
}
static int strncmp(const char *a, const char *b, unsigned long n)
{
	for (; n && *a && *a == *b; a++, b++)
		n--;
	return n ? *(const unsigned char *)a - *(const unsigned char *)b : 0;
}
static int strcmp(const char *a, const char *b) { return strncmp(a, b, -1); }
static char *strcpy(char *to, const char *from)
{
	char *p = to;
	while ((*p++ = *from++))
		;
	return to;
}
static char *strncpy(char *to, const char *from, unsigned long n)
{
	unsigned long i = 0;
	for (; i < n && from[i]; i++)
		to[i] = from[i];
	for (; i < n; i++)
		to[i] = 0;
	return to;
}
static char *strcat(char *to, const char *from)
{
	strcpy(to + strlen(to), from);
	return to;
}
static char *strchr(const char *s, int c)
{
	for (; *s != (char)c; s++)
		if (!*s)
			return 0;
	return (char *)s;
}
static char *strrchr(const char *s, int c)
{
	char *last = 0;
	do
		if (*s == (char)c)
			last = (char *)s;
	while (*s++);
	return last;
}
#endif
