// Landing pads in sections of their own: the same program, each block of which has one.
#include "../exceptions/main.cc"
