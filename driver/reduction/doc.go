// Package reduction sums arrays through a card: what tributary reduce does, as a
// library. Arrays come from memory or from files, one Arrays from each worker.
//
//	outcome, err := reduction.Run(ctx, "cpu:", []reduction.Arrays{w0, w1}, reduction.Options{Op: reduction.Mean})
//
// Run opens a card by its name. A program that holds a card calls Reduce, and one
// that acts between the steps calls New, Sum and Finish. ReadFiles and WriteFile
// read and write .npy and .npz files.
//
// The package prints nothing. Options has callbacks for progress and for cards and
// workers that are late; Outcome has a typed report and warnings.
//
// # Errors
//
// OptionError, FormatError, CardError: the request cannot be right.
// ArraysError: arrays that do not go together, or files that cannot be read.
// OutputError: a place where no file can be written. NonfiniteError: an element
// that Options.Quantize cannot send. ExceptionsError: with Options.FailNonfinite.
// VerifyError: with Options.Verify, a sum that is not the model's. All others are
// those of package driver, and those of the system for files.
//
// Texts of errors name options as tributary's flags without the dash. A caller
// with other names for them uses the method Text of these errors.
package reduction
