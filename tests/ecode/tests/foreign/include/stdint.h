#ifndef STDINT_H
#define STDINT_H
/* The fixed-width types are built in. */
#endif
