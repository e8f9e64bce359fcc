package main

import "github.com/spf13/cobra"

func newDecode() *cobra.Command { return &cobra.Command{Use: "decode FILE"} }
