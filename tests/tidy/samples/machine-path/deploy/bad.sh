cd /root/sluice
