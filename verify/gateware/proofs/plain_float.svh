// The meaning of a floating-point pattern: the table and the paragraph below it in section 7.1 of
// driver/wire/SPEC.md, in the plainest form. The including module has parameters EXP, FRAC and
// INFINITIES; INFINITIES = 0 is a format without infinities, with one NaN of each sign.
//
// Every number is a multiple of its format's smallest subnormal, the unit of magnitudes. An
// exponent field of all ones has a magnitude too, as if not reserved for infinities and NaNs: "as
// if the exponent had no upper bound" is one binade more.

localparam integer SIGN = EXP + FRAC;  // the sign's place, and the number of bits below it
localparam integer MAG = (1 << EXP) + FRAC - 1;  // bits in a magnitude

localparam [SIGN:0] NAN = {1'b0, {EXP{1'b1}}, 1'b1, {FRAC - 1{!INFINITIES}}};

function automatic is_nan(input reg [SIGN:0] x);
  is_nan = &x[SIGN-1:FRAC] && (INFINITIES ? |x[FRAC-1:0] : &x[FRAC-1:0]);
endfunction

function automatic is_infinite(input reg [SIGN:0] x);
  is_infinite = INFINITIES && &x[SIGN-1:FRAC] && x[FRAC-1:0] == 0;
endfunction

function automatic [MAG-1:0] magnitude(input reg [SIGN-1:0] pattern);
  reg [ EXP-1:0] field;
  reg [FRAC-1:0] fraction;
  begin
    {field, fraction} = pattern;
    magnitude = field == 0 ? fraction : {1'b1, fraction} << (field - 1'b1);
  end
endfunction

// Returns the value of a finite number.
function automatic signed [MAG:0] value(input reg [SIGN:0] x);
  value = x[SIGN] ? -{1'b0, magnitude(x[SIGN-1:0])} : {1'b0, magnitude(x[SIGN-1:0])};
endfunction
