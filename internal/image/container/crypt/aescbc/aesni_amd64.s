#include "textflag.h"

// AES-CBC with AES-NI in its AVX encoding. An AESENC takes four cycles where two can start in each, and a step of CBC also
// waits for two XORs: twelve chains fill the units, eight do not. Decryption has no chains, so that the CPU runs ahead into
// the next eight blocks by itself, and eight leave a register for the round key: as an operand in memory it costs a load
// with each AESDEC, which is slower.

// ROUND12 applies the round key at off(AX) to the twelve states X0 to X11.
#define ROUND12(OP, off) \
	VMOVDQU off(AX), X12; \
	APPLY12(OP)

// LAST12 applies the last round key, at (AX)(BX*1).
#define LAST12(OP) \
	VMOVDQU (AX)(BX*1), X12; \
	APPLY12(OP)

#define APPLY12(OP) \
	OP X12, X0, X0; \
	OP X12, X1, X1; \
	OP X12, X2, X2; \
	OP X12, X3, X3; \
	OP X12, X4, X4; \
	OP X12, X5, X5; \
	OP X12, X6, X6; \
	OP X12, X7, X7; \
	OP X12, X8, X8; \
	OP X12, X9, X9; \
	OP X12, X10, X10; \
	OP X12, X11, X11

// NINE12 applies the round keys 1 to 9, which all key lengths have.
#define NINE12(OP) \
	ROUND12(OP, 16); \
	ROUND12(OP, 32); \
	ROUND12(OP, 48); \
	ROUND12(OP, 64); \
	ROUND12(OP, 80); \
	ROUND12(OP, 96); \
	ROUND12(OP, 112); \
	ROUND12(OP, 128); \
	ROUND12(OP, 144)

// ROUND8 applies the round key at off(AX) to the eight states X0 to X7.
#define ROUND8(OP, off) \
	VMOVDQU off(AX), X8; \
	OP X8, X0, X0; \
	OP X8, X1, X1; \
	OP X8, X2, X2; \
	OP X8, X3, X3; \
	OP X8, X4, X4; \
	OP X8, X5, X5; \
	OP X8, X6, X6; \
	OP X8, X7, X7

// LAST8 applies the last round key, at (AX)(BX*1).
#define LAST8(OP) \
	VMOVDQU (AX)(BX*1), X8; \
	OP X8, X0, X0; \
	OP X8, X1, X1; \
	OP X8, X2, X2; \
	OP X8, X3, X3; \
	OP X8, X4, X4; \
	OP X8, X5, X5; \
	OP X8, X6, X6; \
	OP X8, X7, X7

// NINE8 applies the round keys 1 to 9, which all key lengths have.
#define NINE8(OP) \
	ROUND8(OP, 16); \
	ROUND8(OP, 32); \
	ROUND8(OP, 48); \
	ROUND8(OP, 64); \
	ROUND8(OP, 80); \
	ROUND8(OP, 96); \
	ROUND8(OP, 112); \
	ROUND8(OP, 128); \
	ROUND8(OP, 144)

// func encryptTwelve(rk *byte, rounds int, dst, src, ivs *byte, length int, lanes *[12]int)
// Encrypts length bytes in each of twelve lanes, which start at the offsets lanes of src and dst. Two lanes with one offset
// do the same work twice: all of a step is loaded before any of it is stored.
TEXT ·encryptTwelve(SB), NOSPLIT, $0-56
	MOVQ rk+0(FP), AX
	MOVQ rounds+8(FP), BX
	MOVQ dst+16(FP), DI
	MOVQ src+24(FP), SI
	MOVQ ivs+32(FP), CX
	MOVQ length+40(FP), DX
	SHLQ $4, BX
	VMOVDQU 0(CX), X0
	VMOVDQU 16(CX), X1
	VMOVDQU 32(CX), X2
	VMOVDQU 48(CX), X3
	VMOVDQU 64(CX), X4
	VMOVDQU 80(CX), X5
	VMOVDQU 96(CX), X6
	VMOVDQU 112(CX), X7
	VMOVDQU 128(CX), X8
	VMOVDQU 144(CX), X9
	VMOVDQU 160(CX), X10
	VMOVDQU 176(CX), X11
	MOVQ lanes+48(FP), CX
	MOVQ 0(CX), R8
	MOVQ 8(CX), R9
	MOVQ 16(CX), R10
	MOVQ 24(CX), R11
	MOVQ 32(CX), R12
	MOVQ 40(CX), R13

	PCALIGN $64
encryptStep:
	VPXOR (SI)(R8*1), X0, X0
	VPXOR (SI)(R9*1), X1, X1
	VPXOR (SI)(R10*1), X2, X2
	VPXOR (SI)(R11*1), X3, X3
	VPXOR (SI)(R12*1), X4, X4
	VPXOR (SI)(R13*1), X5, X5
	MOVQ 48(CX), R14
	VPXOR (SI)(R14*1), X6, X6
	MOVQ 56(CX), R15
	VPXOR (SI)(R15*1), X7, X7
	MOVQ 64(CX), R14
	VPXOR (SI)(R14*1), X8, X8
	MOVQ 72(CX), R15
	VPXOR (SI)(R15*1), X9, X9
	MOVQ 80(CX), R14
	VPXOR (SI)(R14*1), X10, X10
	MOVQ 88(CX), R15
	VPXOR (SI)(R15*1), X11, X11
	ROUND12(VPXOR, 0)
	NINE12(VAESENC)
	CMPQ BX, $160
	JEQ  encryptLast
	ROUND12(VAESENC, 160)
	ROUND12(VAESENC, 176)
	CMPQ BX, $192
	JEQ  encryptLast
	ROUND12(VAESENC, 192)
	ROUND12(VAESENC, 208)

encryptLast:
	LAST12(VAESENCLAST)
	VMOVDQU X0, (DI)(R8*1)
	VMOVDQU X1, (DI)(R9*1)
	VMOVDQU X2, (DI)(R10*1)
	VMOVDQU X3, (DI)(R11*1)
	VMOVDQU X4, (DI)(R12*1)
	VMOVDQU X5, (DI)(R13*1)
	MOVQ 48(CX), R14
	VMOVDQU X6, (DI)(R14*1)
	MOVQ 56(CX), R15
	VMOVDQU X7, (DI)(R15*1)
	MOVQ 64(CX), R14
	VMOVDQU X8, (DI)(R14*1)
	MOVQ 72(CX), R15
	VMOVDQU X9, (DI)(R15*1)
	MOVQ 80(CX), R14
	VMOVDQU X10, (DI)(R14*1)
	MOVQ 88(CX), R15
	VMOVDQU X11, (DI)(R15*1)
	ADDQ $16, SI
	ADDQ $16, DI
	SUBQ $16, DX
	JNE  encryptStep
	VZEROUPPER
	RET

// func decryptUnits(rk *byte, rounds int, dst, src, ivs *byte, unit, units int)
// Decrypts units one after the other, eight AES blocks at a time and what is left of a unit singly.
TEXT ·decryptUnits(SB), NOSPLIT, $0-56
	MOVQ rk+0(FP), AX
	MOVQ rounds+8(FP), BX
	MOVQ dst+16(FP), DI
	MOVQ src+24(FP), SI
	MOVQ ivs+32(FP), CX
	MOVQ units+48(FP), R9
	SHLQ $4, BX

decryptUnit:
	MOVQ unit+40(FP), DX
	VMOVDQU (CX), X15 // the ciphertext before the next block
	ADDQ $16, CX

	PCALIGN $64
decryptEight:
	CMPQ DX, $128
	JLT  decryptOne
	VMOVDQU 0(SI), X0
	VMOVDQU 16(SI), X1
	VMOVDQU 32(SI), X2
	VMOVDQU 48(SI), X3
	VMOVDQU 64(SI), X4
	VMOVDQU 80(SI), X5
	VMOVDQU 96(SI), X6
	VMOVDQU 112(SI), X7
	ROUND8(VPXOR, 0)
	NINE8(VAESDEC)
	CMPQ BX, $160
	JEQ  decryptLast
	ROUND8(VAESDEC, 160)
	ROUND8(VAESDEC, 176)
	CMPQ BX, $192
	JEQ  decryptLast
	ROUND8(VAESDEC, 192)
	ROUND8(VAESDEC, 208)

decryptLast:
	LAST8(VAESDECLAST)
	VPXOR X15, X0, X0
	VPXOR 0(SI), X1, X1
	VPXOR 16(SI), X2, X2
	VPXOR 32(SI), X3, X3
	VPXOR 48(SI), X4, X4
	VPXOR 64(SI), X5, X5
	VPXOR 80(SI), X6, X6
	VPXOR 96(SI), X7, X7
	VMOVDQU 112(SI), X15
	VMOVDQU X0, 0(DI)
	VMOVDQU X1, 16(DI)
	VMOVDQU X2, 32(DI)
	VMOVDQU X3, 48(DI)
	VMOVDQU X4, 64(DI)
	VMOVDQU X5, 80(DI)
	VMOVDQU X6, 96(DI)
	VMOVDQU X7, 112(DI)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $128, DX
	JMP  decryptEight

decryptOne:
	TESTQ DX, DX
	JEQ   decryptNext
	VMOVDQU (SI), X1
	VPXOR (AX), X1, X0
	MOVQ $16, R8

decryptRound:
	VAESDEC (AX)(R8*1), X0, X0
	ADDQ $16, R8
	CMPQ R8, BX
	JLT  decryptRound
	VAESDECLAST (AX)(BX*1), X0, X0
	VPXOR X15, X0, X0
	VMOVDQA X1, X15
	VMOVDQU X0, (DI)
	ADDQ $16, SI
	ADDQ $16, DI
	SUBQ $16, DX
	JMP  decryptOne

decryptNext:
	DECQ R9
	JNE  decryptUnit
	VZEROUPPER
	RET
