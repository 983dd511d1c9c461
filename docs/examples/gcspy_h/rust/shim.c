/* The implementation of gcspy.h, for a program in another language that calls C. */
#define GCSPY_IMPLEMENTATION
#include "gcspy.h"
