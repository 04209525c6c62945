/* What `calls.c` calls if it is compiled with -DAPART. */
unsigned mixed(unsigned n);

unsigned mixed(unsigned n)
{
    unsigned other = n ^ 0x5bd1e995;
    return other >> 3;
}
