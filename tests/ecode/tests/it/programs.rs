//! Small programs of the language, and their results.

pub(crate) const PROGRAMS: &[(&str, i64)] = &[
    ("{ return 42; }", 42),
    ("{ int i, s = 0; for (i = 0; i < 10; i++) { if (i == 7) break; s += i; } return s; }", 21),
    ("long f(long n) { return n < 2 ? n : f(n-1) + f(n-2); } long proc() { return f(20); }", 6765),
    (
        "struct p { int x; char y; long z; }; long proc() { struct p a = {1, 2, 3}, b; b = a; return b.x + b.y + b.z + sizeof(struct p); }",
        22,
    ),
    (
        "int a[3][4]; long proc() { for (int i = 0; i < 3; i++) for (int j = 0; j < 4; j++) a[i][j] = i * j; int *p = &a[2][3]; return *p + p[-1]; }",
        10,
    ),
    ("{ char *s = \"hello\"; long n = 0; while (*s++) n++; return n; }", 5),
    (
        "int d(int n) { switch (n) { case 1: return 10; case 2: case 3: n = 5; default: n++; } return n; } long proc() { return d(1) + d(2) + d(7); }",
        24,
    ),
    (
        "int add(int a, int b) { return a + b; } int mul(int a, int b) { return a * b; } int (*ops[2])(int, int) = { add, mul }; long proc() { return ops[0](3, 4) + ops[1](3, 4); }",
        19,
    ),
    ("{ unsigned char c = 250; c += 10; short s = 40000; return c + (s < 0); }", 5),
    ("{ int n = 0; goto in; while (n < 10) { n++; in: n += 2; } return n; }", 11),
    ("{ double d = 3.75; float f = d; return (long)(d * f) + (int)-2.5; }", 12),
    ("long proc() { int x = 5; int *p = &x; *p += 3; return x++ + ++x; }", 18),
    ("{ return sizeof(int*) + sizeof(long) + sizeof(\"abc\"); }", 20),
];
