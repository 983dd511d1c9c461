"""The driver for programs that show themselves with `gcspy.h`, in C, C++ or a language that calls C."""
