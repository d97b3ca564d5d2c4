#ifndef CTYPE_H
#define CTYPE_H
static int isdigit(int c) { return c >= '0' && c <= '9'; }
static int isalpha(int c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
static int isspace(int c) { return c == ' ' || (c >= 9 && c <= 13); }
static int toupper(int c) { return c >= 'a' && c <= 'z' ? c - 32 : c; }
static int tolower(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }
#endif
