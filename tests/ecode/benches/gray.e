/*
 * Colour to gray, as the image transcoder of "Kernel Plugins" (VM'04) does it.
 */
long gray(const unsigned char *src, unsigned char *dst, long n)
{
	const unsigned char *p = src;
	unsigned char *r = dst;
	while (p <= src + n - 3) {
		*r++ = (*p >> 2) + (5 * (*(p + 1) >> 3)) + (*(p + 2) >> 3);
		p = p + 3;
	}
	return r - dst;
}

/* The header of a P6 image becomes that of a P5 image. */
long header(const unsigned char *src, unsigned char *dst, long n)
{
	long i, lines = 0;
	if (n < 2 || src[0] != 'P' || src[1] != '6')
		return -1;
	for (i = 0; i < n && lines < 3; i++) {
		dst[i] = src[i];
		if (src[i] == '\n')
			lines++;
	}
	dst[1] = '5';
	return lines == 3 ? i : -1;
}

long handle(const unsigned char *src, long n, unsigned char *dst, long room)
{
	long at = header(src, dst, n);
	if (at < 0 || at + (n - at) / 3 > room)
		return -1;
	return at + gray(src + at, dst + at, n - at);
}

long empty(void)
{
	return 0;
}
