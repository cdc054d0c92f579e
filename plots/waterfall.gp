# plots/waterfall.gp - columns of `data`: label, low, high (percent of the dense peak), kind, text above the bar.
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
set yrange [0:108]
set ytics 0,20,100 format '%.0f %%'
set ylabel 'share of the dense peak' textcolor rgb ink
tick_font = bars > 10 ? ',9' : bars > 7 ? ',11' : ',12'
set xtics scale 0 font tick_font
unset key
whole(kind) = kind eq 'peak' || kind eq 'rest'
plot data using 0:'low_percent':($0-0.38):($0+0.38):'low_percent':'high_percent':(coded(stringcolumn(1))):xtic(1) with boxxyerror lc rgb variable notitle, \
     data using ($0+0.38):($0 == 0 ? column('high_percent') : whole(stringcolumn('kind')) ? NaN : column('low_percent')):(0.24):(0) with vectors nohead lc rgb '#888888' dt 3 notitle, \
     data using 0:'high_percent':'shown' with labels offset 0,0.7 textcolor rgb ink notitle
