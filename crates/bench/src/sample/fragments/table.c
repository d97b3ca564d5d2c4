static const uint32_t table_@n@_rows[] = {
@rows@
};

static size_t table_@n@_nearest(uint32_t key)
{
	size_t best = 0;
	size_t i;

	for (i = 1; i < COUNT_OF(table_@n@_rows); i++) {
		uint32_t here = distance(table_@n@_rows[i], key);

		if (here < distance(table_@n@_rows[best], key))
			best = i;
	}
	return best;
}

static uint32_t table_@n@(uint32_t x)
{
	uint32_t h = @k1@u;
	int round;

	for (round = 0; round < @k2@; round++) {
		size_t at = table_@n@_nearest(x % @k3@u);

		h = mix(h, table_@n@_rows[at] + (uint32_t)at);
		x = next_random(x);
	}
	return h;
}
