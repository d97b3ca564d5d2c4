/* Sizes that several modules share. */

#ifndef CONFIG_H
#define CONFIG_H

#define LINE_BYTES 128
#define STACK_WORDS 64

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
