static uint32_t number_@n@_root(uint32_t x)
{
	uint32_t root = 0;
	uint32_t bit = 1u << 30;

	while (bit > x)
		bit >>= 2;
	for (; bit != 0; bit >>= 2) {
		if (x >= root + bit) {
			x -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return root;
}

static uint32_t number_@n@_divisor(uint32_t a, uint32_t b)
{
	while (b != 0) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static uint32_t number_@n@_power(uint32_t x, uint32_t n, uint32_t m)
{
	uint64_t square = x % m;
	uint64_t out = 1;

	for (; n != 0; n >>= 1) {
		if (n & 1)
			out = out * square % m;
		square = square * square % m;
	}
	return (uint32_t)out;
}

static uint32_t number_@n@(uint32_t x)
{
	uint32_t h = @k1@u;
	int i;

	for (i = 0; i < @k2@; i++) {
		x = next_random(x);
		h = mix(h, number_@n@_root(x));
		h = mix(h, number_@n@_divisor(x, @k3@u));
		h = mix(h, number_@n@_power(x, h, @k3@u + 2));
	}
	return h;
}
