int d(int n) { switch (n) { case 1: return 10; case 2: case 3: n = 5; default: n++; } return n; }
long proc() { int n = 0; goto in; while (n < 10) { n++; in: n += 2; } return d(n) ? n : d(2); }
