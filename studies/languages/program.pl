% GNU Prolog: lists, backtracking, exceptions, arithmetic.
:- initialization(main).
app([],L,L).
app([H|T],L,[H|R]) :- app(T,L,R).
nrev([],[]).
nrev([H|T],R) :- nrev(T,RT), app(RT,[H],R).
range(N,N,[N]) :- !.
range(I,N,[I|T]) :- I<N, I1 is I+1, range(I1,N,T).
queens(N,Qs) :- range(1,N,Ns), permutation(Ns,Qs), safe(Qs).
safe([]). safe([Q|Qs]) :- no_attack(Q,Qs,1), safe(Qs).
no_attack(_,[],_). no_attack(Q,[Q1|Qs],D) :- Q =\= Q1+D, Q =\= Q1-D, D1 is D+1, no_attack(Q,Qs,D1).
main :- range(1,200,L), nrev(L,R), R=[X|_], write(X), nl, queens(6,Q), write(Q), nl, catch(atom_length(_,_),E,(write(caught(E)),nl)), X2 is 2**10+sqrt(16.0), write(X2), nl, findall(A-B,app(A,B,[1,2,3]),Z), write(Z), nl.
