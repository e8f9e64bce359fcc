package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// run runs one command line and returns its exit status. It writes results to out, and progress,
// errors and hints to errs.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	root := newRoot()
	root.SetOut(out)
	root.SetErr(errs)
	root.SetArgs(bothStyles(args))
	cmd, err := execute(ctx, root)
	if err == nil {
		return statusDone
	}
	status, text := explain(ctx, err, cmd.Flags().Lookup("out") != nil)
	fmt.Fprintf(errs, "%s: %s\n", cmd.CommandPath(), text)
	if status == statusUsage {
		fmt.Fprintf(errs, "See: %s -h\n", cmd.CommandPath())
	}
	return status
}

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tributary",
		Short: "Sums gradients through an in-network aggregation card",
		Long: `Tributary sums arrays of gradients, one from each worker, through a card:
a card in software, a virtual card made of the gateware, or a card elsewhere.

A CARD is named
  cpu:              a card in software, of the arrays' format, with as many
                    ports as there are arrays
  cpu:sum=exact,result=fp32
                    the same, with options called as hwgen's flags: lanes,
                    workers, format, result, sum, saturate, chunk, window,
                    jobs
  cpu:DIR           the card that hwgen wrote to DIR, in software
  model:            the Go model of a card, the reference for all others;
                    model:DIR and options as with cpu:
  sim:DIR           starts the virtual card built in DIR, for this command
  unix:PATH         a card that listens on a socket
  tcp:HOST:PORT     a card that listens on a port
  usb:              the card that is plugged in
  usb:VENDOR:PRODUCT#SERIAL
                    the one with these numbers, as tributary list has them;
                    #SERIAL only where there are several
  ftdi:, ft60x:     the card behind FTDI's FT232H or FT2232H, FT601 or FT600;
                    with numbers as above
  serve:unix:PATH   the card that tributary serve shares on this machine;
                    #NAME where it has several
  serve:HOST:PORT   the one on another machine, likewise with /NAME;
                    TRIBUTARY_TOKEN_FILE, TRIBUTARY_TLS_CA, TRIBUTARY_TLS_CERT
                    and TRIBUTARY_TLS_KEY name the files that it asks for
  roce:unix:PATH    the card under RoCEv2 that tributary serve shares, with
  roce:HOST:PORT    names and files as with serve: for this machine's RDMA
                    device, or the one that TRIBUTARY_ROCE_DEVICE names, or
                    TRIBUTARY_ROCE_ADDRESS by its IPv4 address
  udp:HOST          the card on the network at that name or IPv4 address;
                    udp:HOST:PORT at another UDP port than 21570
  serial:PORT       the card behind a serial port, as in serial:/dev/ttyUSB1;
                    serial:PORT@BAUD at another rate than 3000000

Flags can be written -flag or --flag. A file whose name begins with a dash is
written ./-name.

Exit status
  0  done
  1  failed, or interrupted
  2  usage error
  3  no such card, or the wrong card
  4  timed out; the message names the missing workers`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              knownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{flagError(err)} })
	root.SetUsageTemplate(strings.NewReplacer(".FlagUsages", ".FlagUsages | singleDash", "--help", "-h").Replace(root.UsageTemplate()))
	root.SetHelpCommand(newHelp())
	root.AddCommand(
		newReduce(),
		newAllReduce(),
		newCollective(),
		newInfo(),
		newTop(),
		newList(),
		newConfig(),
		newSelftest(),
		newBench(),
		newReset(),
		newServe(),
		newSim(),
		newTrace(),
		newDecode(),
		newPcap(),
		newPlan(),
	)
	return root
}

func init() { cobra.AddTemplateFunc("singleDash", singleDash) }

// singleDash writes the flags of a help text with one dash, as in the rest of the text; each line
// becomes five columns shorter.
func singleDash(usages string) string {
	return strings.NewReplacer("      --", "  -", "-o, --out FILE", "-o FILE  ", "-o, --out FOLDER", "-o FOLDER  ", "-h, --help", "-h   ").Replace(usages)
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, _ := cmd.Root().Find(args)
			if err := knownCommand(cmd.Root(), rest); err != nil {
				return err
			}
			return about.Help()
		},
	}
}

// knownCommand refuses an unknown word in the place of a command.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return usagef("there is no command %q; the commands are %s", args[0], strings.Join(names, ", "))
}

// exactly refuses a command line whose number of operands differs from that of names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("%s is missing", names[len(args)])
		case len(args) > len(names):
			return usagef("unexpected operand %q", args[len(names)])
		}
		return nil
	}
}
