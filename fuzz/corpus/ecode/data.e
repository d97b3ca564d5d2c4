struct p { int x; char y; long z; };
int a[3][4]; int add(int a, int b) { return a + b; } int (*ops[1])(int, int) = { add };
long proc() { struct p s = {1, 2, 3}; int *q = &a[2][3]; *q = s.x; char *t = "text"; double f = 3.75;
return ops[0](q[0], s.y) + sizeof(struct p) + t[1] + (long)(f * 2); }
