--  Ada: exceptions, tasks, a protected object, controlled types, generics, access to subprograms, an enumeration's names.
with Ada.Containers.Ordered_Maps;
with Ada.Exceptions; use Ada.Exceptions;
with Ada.Finalization;
with Ada.Text_IO; use Ada.Text_IO;

procedure Program is
   type Colour is (Red, Green, Blue);
   type Operation is access function (X : Integer) return Integer;
   Too_Large : exception;

   package Counted is
      type Guard is new Ada.Finalization.Limited_Controlled with record
         Number : Integer;
      end record;
      overriding procedure Finalize (Object : in out Guard);
   end Counted;
   package body Counted is
      overriding procedure Finalize (Object : in out Guard) is
      begin
         Put_Line ("end of" & Object.Number'Image);
      end Finalize;
   end Counted;

   package Maps is new Ada.Containers.Ordered_Maps (Integer, Integer);

   protected Total is
      procedure Add (X : Integer);
      function Get return Integer;
   private
      Value : Integer := 0;
   end Total;
   protected body Total is
      procedure Add (X : Integer) is
      begin
         Value := (Value + X) mod 1_000_003;
      end Add;
      function Get return Integer is (Value);
   end Total;

   function Square (X : Integer) return Integer is (X * X);
   function Cube (X : Integer) return Integer is
      Guarded : Counted.Guard := (Ada.Finalization.Limited_Controlled with Number => X);
   begin
      if X > 4 then
         raise Too_Large with "cube of" & Guarded.Number'Image;
      end if;
      return X * X * X;
   end Cube;

   Operations : constant array (1 .. 2) of Operation := (Square'Unrestricted_Access, Cube'Unrestricted_Access);
   Map : Maps.Map;
begin
   declare
      task type Worker (First : Integer);
      task body Worker is
      begin
         for I in First .. First + 1000 loop
            Total.Add (I);
         end loop;
      end Worker;
      A : Worker (1);
      B : Worker (2000);
   begin
      null;
   end;
   Put_Line (Total.Get'Image);
   for I in 1 .. 6 loop
      begin
         Map.Include (I * 7 mod 5, Operations (1 + I mod 2) (I));
      exception
         when Problem : Too_Large => Put_Line (Exception_Name (Problem) & ": " & Exception_Message (Problem));
      end;
   end loop;
   for Place in Map.Iterate loop
      Put (Maps.Key (Place)'Image & " =>" & Maps.Element (Place)'Image & ";");
   end loop;
   New_Line;
   for C in Colour loop
      case C is
         when Red => Put ("r");
         when Green => Put (Colour'Image (C));
         when Blue => Put_Line (Colour'Pos (C)'Image);
      end case;
   end loop;
   begin
      Put_Line (Colour'Value ("YELLOW")'Image);
   exception
      when Constraint_Error => Put_Line ("no such colour");
   end;
end Program;
