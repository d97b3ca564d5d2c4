struct tree_@n@ {
	uint32_t key;
	int left;
	int right;
};

static struct tree_@n@ tree_@n@_pool[@k1@];
static int tree_@n@_used;

static int tree_@n@_insert(int at, uint32_t key)
{
	struct tree_@n@ *t;

	if (at < 0) {
		if (tree_@n@_used == (int)COUNT_OF(tree_@n@_pool))
			return -1;
		t = &tree_@n@_pool[tree_@n@_used];
		t->key = key;
		t->left = -1;
		t->right = -1;
		return tree_@n@_used++;
	}
	t = &tree_@n@_pool[at];
	if (key < t->key)
		t->left = tree_@n@_insert(t->left, key);
	else if (key > t->key)
		t->right = tree_@n@_insert(t->right, key);
	return at;
}

static uint32_t tree_@n@_walk(int at, uint32_t depth)
{
	const struct tree_@n@ *t;
	uint32_t h;

	if (at < 0)
		return depth;
	t = &tree_@n@_pool[at];
	h = tree_@n@_walk(t->left, depth + 1);
	h = mix(h, t->key);
	return mix(h, tree_@n@_walk(t->right, depth + 1));
}

static uint32_t tree_@n@(uint32_t x)
{
	int root = -1;
	int i;

	tree_@n@_used = 0;
	for (i = 0; i < @k2@; i++) {
		x = next_random(x);
		root = tree_@n@_insert(root, x % @k3@u);
	}
	return tree_@n@_walk(root, 0);
}
