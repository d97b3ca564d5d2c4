struct node_@n@ {
	struct node_@n@ *next;
	uint32_t value;
};

static struct node_@n@ *list_@n@_push(struct node_@n@ *head, uint32_t value)
{
	struct node_@n@ *node = malloc(sizeof(*node));

	if (node == NULL)
		fail("out of memory");
	node->value = value;
	node->next = head;
	return node;
}

static struct node_@n@ *list_@n@_reverse(struct node_@n@ *head)
{
	struct node_@n@ *done = NULL;

	while (head != NULL) {
		struct node_@n@ *next = head->next;

		head->next = done;
		done = head;
		head = next;
	}
	return done;
}

static struct node_@n@ *list_@n@_drop(struct node_@n@ *head, uint32_t by)
{
	struct node_@n@ **link = &head;

	while (*link != NULL) {
		struct node_@n@ *node = *link;

		if (node->value % by == 0) {
			*link = node->next;
			free(node);
		} else {
			link = &node->next;
		}
	}
	return head;
}

static uint32_t list_@n@(uint32_t x)
{
	struct node_@n@ *head = NULL;
	uint32_t h = x;
	int i;

	for (i = 0; i < @k1@; i++) {
		x = next_random(x);
		head = list_@n@_push(head, x % @k3@u);
	}
	head = list_@n@_reverse(list_@n@_drop(head, @k2@u));
	while (head != NULL) {
		struct node_@n@ *next = head->next;

		h = mix(h, head->value);
		free(head);
		head = next;
	}
	return h;
}
