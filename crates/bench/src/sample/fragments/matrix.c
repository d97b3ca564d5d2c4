enum { SIDE_@n@ = @side@ };

struct matrix_@n@ {
	uint32_t cell[SIDE_@n@][SIDE_@n@];
};

static void matrix_@n@_fill(struct matrix_@n@ *m, uint32_t x)
{
	int row, column;

	for (row = 0; row < SIDE_@n@; row++)
		for (column = 0; column < SIDE_@n@; column++) {
			x = next_random(x);
			m->cell[row][column] = x % @k2@u;
		}
}

static void matrix_@n@_multiply(struct matrix_@n@ *out,
	const struct matrix_@n@ *a, const struct matrix_@n@ *b)
{
	int row, column, k;

	for (row = 0; row < SIDE_@n@; row++)
		for (column = 0; column < SIDE_@n@; column++) {
			uint32_t sum = 0;

			for (k = 0; k < SIDE_@n@; k++)
				sum += a->cell[row][k] * b->cell[k][column];
			out->cell[row][column] = sum;
		}
}

static uint32_t matrix_@n@(uint32_t x)
{
	struct matrix_@n@ a, b, c;
	uint32_t h = @k1@u;
	int i;

	matrix_@n@_fill(&a, x);
	matrix_@n@_fill(&b, x ^ @k3@u);
	matrix_@n@_multiply(&c, &a, &b);
	matrix_@n@_multiply(&a, &c, &b);
	for (i = 0; i < SIDE_@n@; i++)
		h = mix(h, a.cell[i][i] ^ c.cell[i][SIDE_@n@ - 1 - i]);
	return h;
}
