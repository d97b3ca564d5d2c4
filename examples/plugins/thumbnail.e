/*
 * A thumbnail: an image as binary PPM (P6, 8 bits) becomes one that fits into 96 by 96 pixels, each of which is the mean
 * of those that it stands for. A smaller image stays as it is. A mistake in the image gives an empty reply, and a line in
 * the log.
 */
static long at;	/* how far the header has been read */

static long fail(const char *why, long len)
{
	host_log(why, len);
	return 0;
}

/* The next number of the header, after blanks and comments; -1 if there is none. */
static long number(const unsigned char *in, long n)
{
	long value = 0, digits = 0;
	while (at < n && (in[at] == ' ' || in[at] == '\t' || in[at] == '\n' || in[at] == '\r' || in[at] == '#')) {
		if (in[at] == '#')
			while (at < n && in[at] != '\n')
				at++;
		else
			at++;
	}
	while (at < n && in[at] >= '0' && in[at] <= '9' && digits < 6) {
		value = 10 * value + (in[at] - '0');
		digits++;
		at++;
	}
	return digits ? value : -1;
}

/* Writes a number and the blank behind it; how many bytes. */
static long print(unsigned char *out, long value, char blank)
{
	unsigned char digits[10];
	long count = 0, i;
	do {
		digits[count++] = '0' + value % 10;
		value /= 10;
	} while (value);
	for (i = 0; i < count; i++)
		out[i] = digits[count - 1 - i];
	out[count] = blank;
	return count + 1;
}

long handle(const unsigned char *in, long n, unsigned char *out, long room)
{
	const long side = 96;
	long width, height, most, step, small_width, small_height, x, y, i, j, c, length = 3;
	if (n < 3 || in[0] != 'P' || in[1] != '6')
		return fail("not a binary PPM image", 22);
	at = 2;
	width = number(in, n);
	height = number(in, n);
	most = number(in, n);
	at++;	/* one blank ends the header */
	if (width <= 0 || height <= 0 || most != 255)
		return fail("not a PPM header for 8 bits", 27);
	if (width * height > (n - at) / 3)
		return fail("the image is cut off", 20);
	step = (width > height ? width : height) + side - 1;
	step /= side;
	small_width = (width + step - 1) / step;
	small_height = (height + step - 1) / step;
	if (room < 40 || 3 * small_width * small_height > room - 40)
		return fail("no room for the reply", 21);
	out[0] = 'P';
	out[1] = '6';
	out[2] = '\n';
	length += print(out + length, small_width, ' ');
	length += print(out + length, small_height, '\n');
	length += print(out + length, 255, '\n');
	in += at;
	for (y = 0; y < small_height; y++)
		for (x = 0; x < small_width; x++)
			for (c = 0; c < 3; c++) {
				long sum = 0, count = 0;
				for (j = y * step; j < (y + 1) * step && j < height; j++)
					for (i = x * step; i < (x + 1) * step && i < width; i++) {
						sum += in[3 * (j * width + i) + c];
						count++;
					}
				out[length++] = sum / count;
			}
	return length;
}
