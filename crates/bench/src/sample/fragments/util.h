/* Small functions that every module uses. */

#ifndef UTIL_H
#define UTIL_H

#include <stdint.h>

void fail(const char *why);

static inline uint32_t mix(uint32_t h, uint32_t x)
{
	h ^= x + 0x9e3779b9u + (h << 6) + (h >> 2);
	return h;
}

static inline uint32_t distance(uint32_t a, uint32_t b)
{
	return a > b ? a - b : b - a;
}

static inline uint32_t next_random(uint32_t x)
{
	x = x * 1664525u + 1013904223u;
	return x ^ x >> 15;
}

static inline uint32_t hash_text(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text != '\0'; text++)
		h = (h ^ (uint32_t)(unsigned char)*text) * 16777619u;
	return h;
}

#endif
