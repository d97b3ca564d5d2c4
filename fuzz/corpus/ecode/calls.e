struct pair { long a; int b; };
typedef int (*op)(int, int);
extern int report(const char *text, ...);
static int add(int a, int b) { return a + b; }
static int sub(int a, int b) { return a - b; }
static op table[2] = { add, sub };
int later();
struct pair swap(struct pair p) { struct pair q = { p.b, (int)p.a }; return q; }
long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int later(int a) { return a; }
long proc(long n)
{
    op f = n & 1 ? table[0] : sub;
    struct pair p = { n, 3 };
    p = swap(swap(p));
    report("%d %f", f(1, 2), 1.5f);
    if (n > 100) return ((long (*)(long))add)(n) + ((int (*)(void))(long)f)();
    return fib(p.a & 15) + (*f)(p.b, later(2)) + (f == add) + ((long)&table[1] & 7);
}
