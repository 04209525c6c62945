! Fortran: array operations, a procedure pointer, formatted input and output, recursion.
program main
  implicit none
  integer, parameter :: n = 60
  real(8) :: a(n, n), b(n, n), c(n, n)
  procedure(factorial), pointer :: pointer
  character(20) :: text
  integer :: i, j
  do i = 1, n
    do j = 1, n
      a(i, j) = i + j
      b(i, j) = i - j
    end do
  end do
  c = matmul(a, transpose(b))
  print '(2F14.2)', sum(c), maxval(c)
  pointer => factorial
  print *, pointer(6)
  write (text, '(I5, A, ES10.3)') 42, 'x', 1.5d0
  print *, text
  read (text, '(I5)') i
  print *, i
contains
  recursive integer function factorial(m) result(product)
    integer, intent(in) :: m
    product = 1
    if (m > 1) product = m * factorial(m - 1)
  end function
end program
