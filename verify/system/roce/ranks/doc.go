// Package ranks tests `tributary`, built with libibverbs, in guests with Linux's Soft-RoCE: a daemon in one of
// them owns a card under RoCEv2, and each guest runs a rank. Control passes through the card as well, as TCP.
package ranks
