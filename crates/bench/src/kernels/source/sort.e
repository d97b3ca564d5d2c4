/* Heap sort of numbers of four bytes. */
static unsigned int heap[1 << 20];

static void sink(long at, long end)
{
	unsigned int value = heap[at];
	for (;;) {
		long child = 2 * at + 1;
		if (child >= end)
			break;
		if (child + 1 < end && heap[child + 1] > heap[child])
			child++;
		if (heap[child] <= value)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = value;
}

long handle(const unsigned char *in, long n, unsigned char *out, long room)
{
	long i, count = n / 4;
	if (count > (1 << 20) || 4 * count > room)
		return 0;
	for (i = 0; i < count; i++)
		heap[i] = in[4 * i] | in[4 * i + 1] << 8 | in[4 * i + 2] << 16 | (unsigned int)in[4 * i + 3] << 24;
	for (i = count / 2 - 1; i >= 0; i--)
		sink(i, count);
	for (i = count - 1; i > 0; i--) {
		unsigned int last = heap[0];
		heap[0] = heap[i];
		heap[i] = last;
		sink(0, i);
	}
	for (i = 0; i < 4 * count; i++)
		out[i] = heap[i / 4] >> (8 * (i % 4));
	return 4 * count;
}
