/* Needs nothing to be loaded, and so can be loaded beside a program: gets through when it runs. */
void _start(void) {
#if defined(__x86_64__)
    __asm__ volatile("syscall" : : "a"(231L), "D"(42L) : "rcx", "r11", "memory");
#else
    register long number __asm__("x8") = 94, status __asm__("x0") = 42;
    __asm__ volatile("svc 0" : : "r"(number), "r"(status) : "memory");
#endif
    for (;;) {}
}
