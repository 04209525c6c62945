;; Scheme: continuations, exceptions, deep recursion and garbage on the stack.
(import (chicken condition) (chicken sort))
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(print (fib 22))
(print (call/cc (lambda (k) (for-each (lambda (x) (if (> x 3) (k x))) '(1 2 3 4 5)) 'none)))
(print (handle-exceptions e (list 'caught (condition-property-accessor 'exn 'message)) (car 5)))
(print (sort (map (lambda (x) (modulo (* x 7919) 101)) '(1 2 3 4 5 6 7 8)) <))
(define (loop i acc) (if (= i 0) acc (loop (- i 1) (cons i '()))))
(print (loop 1000000 '()))
