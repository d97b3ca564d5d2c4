#ifndef MATH_H
#define MATH_H
extern double sin(double);
extern double cos(double);
extern double sqrt(double);
#endif
