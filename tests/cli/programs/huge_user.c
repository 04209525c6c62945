/* Runs what the shared object of huge.c does. */
int answer(void);

int main(void) { return answer(); }
