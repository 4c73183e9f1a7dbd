-- A member's writes stay; they commit with the others.
RELEASE member
