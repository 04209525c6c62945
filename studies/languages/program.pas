{ Pascal: virtual methods and pointers to them, exceptions, strings that are counted, a case of many values. }
program main;
{$mode objfpc}{$H+}
uses SysUtils, Classes;
type
  TShape = class
    function Area(x: integer): integer; virtual;
  end;
  TLimited = class(TShape)
    function Area(x: integer): integer; override;
  end;
  TMethod = function(x: integer): integer of object;

function TShape.Area(x: integer): integer;
begin
  result := x * x;
end;

function TLimited.Area(x: integer): integer;
begin
  if x > 5 then raise Exception.Create('too large');
  result := inherited Area(x) * 2;
end;

function Fibonacci(n: integer): int64;
begin
  if n < 2 then result := n else result := Fibonacci(n - 1) + Fibonacci(n - 2);
end;

var
  shape: TShape;
  method: TMethod;
  list: TStringList;
  text: string;
  i: integer;
begin
  shape := TLimited.Create;
  method := @shape.Area;
  writeln(shape.ClassName, ' ', method(3), ' ', Fibonacci(20));
  try
    shape.Area(9);
  except
    on error: Exception do writeln('caught: ', error.Message);
  end;
  list := TStringList.Create;
  for i := 1 to 20 do list.Add(IntToStr(i * 7919 mod 1009));
  list.Sort;
  writeln(list.CommaText);
  for i := 0 to 8 do begin
    case i of
      0: text := 'none';
      1: text := 'one';
      2: text := 'two';
      3, 4: text := 'few';
      5: text := 'five';
      7: text := 'seven';
    else
      text := 'many';
    end;
    write(text, ' ');
  end;
  writeln(Format('%.3f %x ', [3.14159, 255]), StringReplace('a-b-c', '-', '+', [rfReplaceAll]));
end.
