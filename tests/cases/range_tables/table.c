struct range { void (*first)(void), (*behind)(void), (*handler)(void); };
void bytes_left(void), bytes_fault(void), words_left(void), words_fault(void);

const struct range ranges[] = {
    {words_left, words_fault, words_fault},
    {bytes_left, bytes_fault, bytes_fault},
    {0, 0, 0},
};
