#include "textflag.h"

// HMAC-SHA1 of block numbers with the SHA instructions of x86, four at a time: a SHA1RNDS4 takes six cycles and the next one
// of the same hash waits for it, while those of other hashes can start. A state has a to d in one register and e in the
// upper quarter of another; a register of message words has the first word in its upper quarter.
//
// The inner message is the 4 bytes of the number after 64 bytes of padded key: 544 bits. The outer one is the 20 bytes of
// the inner digest after 64 bytes of padded key: 672 bits. The states after the padded keys come from the caller.
//
// For hash l of the four, X(l) is a to d, X(4+l) e, and X(8+l) and X(12+l) alternate as the last four words of the schedule.
// The frame has, from the first multiple of 16: the inner and the outer state, as the instructions use them; the last
// sixteen words of each hash; a to d of each before the last four rounds, of which the next e is made; the numbers.

DATA shaPad<>+0x00(SB)/8, $0
DATA shaPad<>+0x08(SB)/8, $0x0000000080000000
GLOBL shaPad<>(SB), RODATA|NOPTR, $16

// shaOne counts, in the quarter of the number.
DATA shaOne<>+0x00(SB)/8, $0
DATA shaOne<>+0x08(SB)/8, $0x0000000100000000
GLOBL shaOne<>(SB), RODATA|NOPTR, $16

DATA shaReverse<>+0x00(SB)/8, $0x08090a0b0c0d0e0f
DATA shaReverse<>+0x08(SB)/8, $0x0001020304050607
GLOBL shaReverse<>(SB), RODATA|NOPTR, $16

#define STATES 0
#define WORDS 64
#define BEFORE 320
#define NUMBERS 384

// ROUNDS are four rounds of the hash l with the words in m.
#define ROUNDS(f, l, m, a, e) \
	MOVO (BEFORE+16*l)(R12), e; \
	SHA1NEXTE m, e; \
	MOVO a, (BEFORE+16*l)(R12); \
	SHA1RNDS4 f, e, a

// FIRST, which adds e unchanged, and GIVEN are rounds with words of the message.
#define FIRST(l, m, a, e) \
	MOVO (WORDS+16*l)(R12), m; \
	PADDL m, e; \
	MOVO a, (BEFORE+16*l)(R12); \
	SHA1RNDS4 $0, e, a
#define GIVEN(at, l, m, a, e) \
	MOVO (WORDS+64*at+16*l)(R12), m; \
	ROUNDS($0, l, m, a, e)

// MADE are rounds with new words of the schedule: m gets them, from the last four in last and those at w0 to w2, and
// stores them at w0.
#define MADE(f, w0, w1, w2, l, m, last, a, e) \
	MOVO (WORDS+64*w0+16*l)(R12), m; \
	SHA1MSG1 (WORDS+64*w1+16*l)(R12), m; \
	PXOR (WORDS+64*w2+16*l)(R12), m; \
	SHA1MSG2 last, m; \
	MOVO m, (WORDS+64*w0+16*l)(R12); \
	ROUNDS(f, l, m, a, e)

// EVEN and ODD are MADE for all four hashes: the words go to X8 to X11, or to X12 to X15.
#define EVEN(f, w0, w1, w2) \
	MADE(f, w0, w1, w2, 0, X8, X12, X0, X4); \
	MADE(f, w0, w1, w2, 1, X9, X13, X1, X5); \
	MADE(f, w0, w1, w2, 2, X10, X14, X2, X6); \
	MADE(f, w0, w1, w2, 3, X11, X15, X3, X7)
#define ODD(f, w0, w1, w2) \
	MADE(f, w0, w1, w2, 0, X12, X8, X0, X4); \
	MADE(f, w0, w1, w2, 1, X13, X9, X1, X5); \
	MADE(f, w0, w1, w2, 2, X14, X10, X2, X6); \
	MADE(f, w0, w1, w2, 3, X15, X11, X3, X7)

// STATE puts the state at off of SI into the frame.
#define STATE(off, to) \
	MOVOU (off)(SI), X0; \
	PSHUFL $0x1b, X0, X0; \
	MOVO X0, (to)(R12); \
	MOVL (off+16)(SI), R8; \
	MOVQ R8, X0; \
	PSLLO $12, X0; \
	MOVO X0, (to+16)(R12)

// func fillSHANI(dst *byte, groups int, first uint32, states *[2][5]uint32)
// Writes groups times four IVs. The frame is wiped at the end.
TEXT ·fillSHANI(SB), NOSPLIT, $416-32
	MOVQ dst+0(FP), DI
	MOVQ groups+8(FP), CX
	MOVL first+16(FP), R10
	MOVQ states+24(FP), SI
	LEAQ 15(SP), R12
	ANDQ $~15, R12
	STATE(0, STATES+0)
	STATE(20, STATES+32)
	MOVQ R10, X0
	PSLLO $12, X0
	MOVOU shaPad<>(SB), X1
	POR X1, X0

group:
	// The inner message: the number, and the padding. X0 is the next number.
	MOVOU shaOne<>(SB), X1
	PXOR X2, X2
	MOVO X0, (WORDS+0)(R12)
	PADDL X1, X0
	MOVO X2, (WORDS+64)(R12)
	MOVO X0, (WORDS+16)(R12)
	PADDL X1, X0
	MOVO X2, (WORDS+80)(R12)
	MOVO X0, (WORDS+32)(R12)
	PADDL X1, X0
	MOVO X2, (WORDS+96)(R12)
	MOVO X0, (WORDS+48)(R12)
	PADDL X1, X0
	MOVO X2, (WORDS+112)(R12)
	MOVO X0, NUMBERS(R12)
	LEAQ STATES(R12), R8
	MOVL $544, R9

hash:
	MOVO 0(R8), X0
	MOVO 16(R8), X4
	PXOR X8, X8
	MOVQ R9, X12
	MOVO X0, X1
	MOVO X4, X5
	MOVO X0, X2
	MOVO X4, X6
	MOVO X0, X3
	MOVO X4, X7
	MOVO X8, (WORDS+128)(R12)
	MOVO X12, (WORDS+192)(R12)
	MOVO X8, (WORDS+144)(R12)
	MOVO X12, (WORDS+208)(R12)
	MOVO X8, (WORDS+160)(R12)
	MOVO X12, (WORDS+224)(R12)
	MOVO X8, (WORDS+176)(R12)
	MOVO X12, (WORDS+240)(R12)
	FIRST(0, X8, X0, X4)
	FIRST(1, X9, X1, X5)
	FIRST(2, X10, X2, X6)
	FIRST(3, X11, X3, X7)
	GIVEN(1, 0, X12, X0, X4)
	GIVEN(1, 1, X13, X1, X5)
	GIVEN(1, 2, X14, X2, X6)
	GIVEN(1, 3, X15, X3, X7)
	GIVEN(2, 0, X8, X0, X4)
	GIVEN(2, 1, X9, X1, X5)
	GIVEN(2, 2, X10, X2, X6)
	GIVEN(2, 3, X11, X3, X7)
	GIVEN(3, 0, X12, X0, X4)
	GIVEN(3, 1, X13, X1, X5)
	GIVEN(3, 2, X14, X2, X6)
	GIVEN(3, 3, X15, X3, X7)
	EVEN($0, 0, 1, 2)
	ODD($1, 1, 2, 3)
	EVEN($1, 2, 3, 0)
	ODD($1, 3, 0, 1)
	EVEN($1, 0, 1, 2)
	ODD($1, 1, 2, 3)
	EVEN($2, 2, 3, 0)
	ODD($2, 3, 0, 1)
	EVEN($2, 0, 1, 2)
	ODD($2, 1, 2, 3)
	EVEN($2, 2, 3, 0)
	ODD($3, 3, 0, 1)
	EVEN($3, 0, 1, 2)
	ODD($3, 1, 2, 3)
	EVEN($3, 2, 3, 0)
	ODD($3, 3, 0, 1)
	PADDL 0(R8), X0
	PADDL 0(R8), X1
	PADDL 0(R8), X2
	PADDL 0(R8), X3
	CMPL R9, $544
	JNE  write

	// The outer message: the digest, and the padding.
	MOVOU shaPad<>(SB), X8
	MOVO (BEFORE+0)(R12), X4
	SHA1NEXTE 16(R8), X4
	POR X8, X4
	MOVO X0, (WORDS+0)(R12)
	MOVO X4, (WORDS+64)(R12)
	MOVO (BEFORE+16)(R12), X5
	SHA1NEXTE 16(R8), X5
	POR X8, X5
	MOVO X1, (WORDS+16)(R12)
	MOVO X5, (WORDS+80)(R12)
	MOVO (BEFORE+32)(R12), X6
	SHA1NEXTE 16(R8), X6
	POR X8, X6
	MOVO X2, (WORDS+32)(R12)
	MOVO X6, (WORDS+96)(R12)
	MOVO (BEFORE+48)(R12), X7
	SHA1NEXTE 16(R8), X7
	POR X8, X7
	MOVO X3, (WORDS+48)(R12)
	MOVO X7, (WORDS+112)(R12)
	LEAQ (STATES+32)(R12), R8
	MOVL $672, R9
	JMP  hash

write:
	MOVOU shaReverse<>(SB), X8
	PSHUFB X8, X0
	MOVOU X0, 0(DI)
	PSHUFB X8, X1
	MOVOU X1, 16(DI)
	PSHUFB X8, X2
	MOVOU X2, 32(DI)
	PSHUFB X8, X3
	MOVOU X3, 48(DI)
	MOVO NUMBERS(R12), X0
	ADDQ $64, DI
	DECQ CX
	JNE  group

	PXOR X0, X0
	MOVL $384, CX

wipe:
	SUBL $16, CX
	MOVO X0, (R12)(CX*1)
	JNE  wipe
	RET

// func leaf7() (ebx uint32)
// Asks CPUID for the features of leaf 7, which every CPU with AVX2 has.
TEXT ·leaf7(SB), NOSPLIT, $0-4
	MOVL $7, AX
	XORL CX, CX
	CPUID
	MOVL BX, ebx+0(FP)
	RET
