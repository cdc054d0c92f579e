# plots/difference.gp - columns of `data`: label, low, high, kind (whole, more, less), text above the bar.
width = 1200
height = 560
edge = 0.07
load style
set datafile columnheaders
set border 2
set lmargin at screen 0.07
set rmargin at screen 0.975
set tmargin at screen 1.0 - 84.0/height
set bmargin at screen 58.0/height
set xrange [-0.6:bars-0.4]
# Small changes of a long step are seen where the axis begins near them.
low = least > 0.5 * most ? least - 2.0 * (most - least) - 0.02 * most : 0
low = low < 0.05 * most ? 0 : low
set yrange [low:most+0.09*(most-low)]
set ylabel unit . (low > 0 ? ', from ' . sprintf('%.3g', low) : '') textcolor rgb ink
tick_font = bars > 10 ? ',9' : bars > 7 ? ',11' : ',12'
set xtics scale 0 font tick_font
unset key
shade(kind) = kind eq 'more' ? 0xD55E00 : kind eq 'less' ? 0x009E73 : 0x0072B2
bottom(kind, x) = kind eq 'whole' ? low : x
plot data using 0:(column('high')):($0-0.38):($0+0.38):(bottom(stringcolumn('kind'), column('low'))):'high':(shade(stringcolumn('kind'))):xtic(1) with boxxyerror lc rgb variable notitle, \
     data using 0:'high':'shown' with labels offset 0,0.7 textcolor rgb ink notitle
