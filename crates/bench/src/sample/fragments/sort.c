static void sort_@n@_shell(uint32_t *v, size_t n)
{
	static const size_t gaps[] = { @gaps@ };
	size_t g;

	for (g = 0; g < COUNT_OF(gaps); g++) {
		size_t gap = gaps[g];
		size_t i;

		for (i = gap; i < n; i++) {
			uint32_t item = v[i];
			size_t j = i;

			while (j >= gap && v[j - gap] > item) {
				v[j] = v[j - gap];
				j -= gap;
			}
			v[j] = item;
		}
	}
}

static size_t sort_@n@_unique(uint32_t *v, size_t n)
{
	size_t kept = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (kept == 0 || v[kept - 1] != v[i])
			v[kept++] = v[i];
	return kept;
}

static uint32_t sort_@n@(uint32_t x)
{
	uint32_t v[@k1@];
	uint32_t h = 0;
	size_t n = COUNT_OF(v);
	size_t i;

	for (i = 0; i < n; i++) {
		x = next_random(x);
		v[i] = x % @k3@u;
	}
	sort_@n@_shell(v, n);
	n = sort_@n@_unique(v, n);
	for (i = 0; i < n; i++)
		h = mix(h, v[i]);
	return h;
}
