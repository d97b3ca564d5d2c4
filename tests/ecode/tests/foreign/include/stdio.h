#ifndef STDIO_H
#define STDIO_H
#define NULL ((void *)0)
typedef unsigned long size_t;
extern int printf(const char *format, ...);
extern int sprintf(char *out, const char *format, ...);
extern int puts(const char *text);
extern int putchar(int c);
#endif
